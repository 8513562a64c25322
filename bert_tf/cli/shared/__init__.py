"""What several commands use: files written, models loaded, tables printed, options for reading examples."""
