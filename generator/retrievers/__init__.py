"""Ways to find passages, each a class of settings that opens a `generator.schema.Retriever`."""
