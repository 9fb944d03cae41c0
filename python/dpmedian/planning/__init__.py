"""Planning: public parameters become a frozen `Plan` before any data are read."""
