"""The C library: opened, its tensors, plans, descents and programs."""
