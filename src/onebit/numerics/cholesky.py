"""Cholesky factors of small matrices, and triangular solves."""

from __future__ import annotations

import math

from onebit.core.compiling import kernel


@kernel
def factor(M):
    """Replace M, the identity plus a positive semidefinite matrix, by its Cholesky factor F.

    Only the lower triangle is read. No pivot is below one, up to rounding.
    """
    for j in range(M.shape[0]):
        for k in range(j):
            for i in range(j, M.shape[0]):
                M[i, j] -= M[i, k] * M[j, k]
        M[j, j] = math.sqrt(max(M[j, j], 1.0))
        for i in range(j + 1, M.shape[0]):
            M[i, j] /= M[j, j]


@kernel
def forward(F, b):
    """Replace the vector b by F^{-1} b."""
    for i in range(F.shape[0]):
        for k in range(i):
            b[i] -= F[i, k] * b[k]
        b[i] /= F[i, i]


@kernel
def forward_rows(F, B):
    """Replace the matrix B by F^{-1} B."""
    for i in range(F.shape[0]):
        for k in range(i):
            for c in range(B.shape[1]):
                B[i, c] -= F[i, k] * B[k, c]
        for c in range(B.shape[1]):
            B[i, c] /= F[i, i]


@kernel
def backward(F, b):
    """Replace the vector b by F'^{-1} b."""
    for i in range(F.shape[0] - 1, -1, -1):
        for k in range(i + 1, F.shape[0]):
            b[i] -= F[k, i] * b[k]
        b[i] /= F[i, i]
