"""The methods of the paper (Haghifam, Steinke, Ullman, NeurIPS 2024). The default method uses none of them.

| module | in the paper |
|---|---|
| `find_radius.py` | RadiusFinder, algorithm 1 |
| `localize.py` | Localization, algorithm 2 |
| `dpgd.py` | noisy projected gradient descent, the baseline |
| `loc_dpgd.py` | LocDPGD, algorithm 3 |
| `loc_cutting_plane.py` | LocDPCuttingPlane, algorithm 4 |
| `inverse_sensitivity.py` | SInvS, algorithm 5 |

The constants are in `dpmedian.profile`. The page "errata" of the documentation lists the differences between the code
and the printed text. "The paper" in these modules is this paper.
"""
