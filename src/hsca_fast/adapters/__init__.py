"""Other people's front ends with this library behind them; one module for each, which imports its front end when it is imported."""
