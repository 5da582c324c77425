"""Messages with secrets and without, texts slow to read, replies that obey: made before the code that they try."""
