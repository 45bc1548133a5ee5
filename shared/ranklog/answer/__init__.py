"""What an answer says about itself, and how it is written down. Pure values; never claims complete when a line is missing."""
