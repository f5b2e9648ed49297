"""Retrievers, each a class of settings that opens a `generator.schema.Retriever`."""
