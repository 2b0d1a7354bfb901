"""Write the tables of `onebit.numerics.winning` anew, after an edit of what computes them."""

from safetensors.numpy import save_file

from onebit.numerics.winning import TABLES, tables

if __name__ == "__main__":
    save_file(tables(), TABLES)
    TABLES.chmod(0o644)
    print(f"{TABLES} has {TABLES.stat().st_size} bytes")
