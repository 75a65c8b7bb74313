"""TensorFlow 2 SavedModels: reading, re-export with the served names, and conversion by TF-TRT."""
