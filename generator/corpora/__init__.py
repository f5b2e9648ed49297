"""Sources of documents, each a class of settings that is a `generator.schema.Corpus`."""
