"""Fine-tune students on the context-response pairs of dialogs."""
