"""What the Lambda functions share: their settings, read once from the environment. Nothing else imports it."""
