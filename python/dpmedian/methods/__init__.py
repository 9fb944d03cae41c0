"""Methods: one module for each algorithm, with its proof beside it. Methods compose mechanisms and never see the
records.

`contract.py` says what a method is, and `registry.py` lists them. A new method is a module with `name`, `uses`,
`relations`, `check(parameters)` and `calibrate(parameters, rho)`, a proof, and a line in the registry. The contract
tests then cover it."""
