"""Adapters for other tools, one module each. `import onebit` imports none of them."""
