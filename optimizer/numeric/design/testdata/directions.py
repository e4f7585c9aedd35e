"""Writes directions.bin from the table that SciPy ships.

Source: S. Joe and F. Y. Kuo, Constructing Sobol sequences with better
two-dimensional projections, SIAM J. Sci. Comput. 30, 2635-2654 (2008), table
new-joe-kuo-6.21201, https://web.maths.unsw.edu.au/~fkuo/sobol/, as held in
scipy/stats/_sobol_direction_numbers.npz of SciPy 1.17.1.

Run from optimizer/numeric/design: python3 testdata/directions.py
"""
import os
import struct

import numpy as np
import scipy.stats

DIMENSIONS = 1111
table = np.load(os.path.join(os.path.dirname(scipy.stats.__file__), "_sobol_direction_numbers.npz"))
poly, vinit = table["poly"], table["vinit"]
with open("directions.bin", "wb") as out:
    for d in range(1, DIMENSIONS):
        degree = int(poly[d]).bit_length() - 1
        out.write(struct.pack(f"<{1 + degree}H", int(poly[d]), *(int(m) for m in vinit[d, :degree])))
