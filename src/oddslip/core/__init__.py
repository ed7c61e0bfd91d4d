"""What every layer needs: panels, labels, weights, tallies, results, and checks of arguments."""
