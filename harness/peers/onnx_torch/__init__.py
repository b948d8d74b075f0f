"""A reader of ONNX for PyTorch, which has none: a graph of static shapes as a torch.nn.Module."""
