"""Methods: one module for each algorithm, with its proof beside it. Methods compose mechanisms and never see the
records.

`contract.py` defines the interface of a method, and `registry.py` lists the methods. A new method is a module with
`name`, `uses`, `relations`, `check(parameters)` and `calibrate(parameters, rho)`, a proof, and a line in the registry.
The contract tests then cover it."""
