"""What gpu_check runs: one module a concern, one a section. Only Python's standard library; torch_gpt.py is run by
another Python where PyTorch is."""
