//! What the chaos found, each as the shortest story that shows it.
