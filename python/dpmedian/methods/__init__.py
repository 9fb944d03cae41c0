"""Methods: one module per algorithm, its proof beside it. They compose mechanisms and never see the records.

`contract.py` says what a method is; `registry.py` lists them. A new method is a module with `name`, `uses`,
`relations`, `check(parameters)` and `calibrate(parameters, rho)`, a proof, and a line in the registry; the contract
tests do the rest."""
