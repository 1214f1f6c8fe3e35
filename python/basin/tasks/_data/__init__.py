"""Networks, sets of graphs and pictures from what Python has."""
