"""Sources of documents, each a class of settings, `generator.corpora.base.CorpusSettings`."""
