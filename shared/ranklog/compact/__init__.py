"""Few large objects from many small ones: a reader's answers are the same before, during and after."""
