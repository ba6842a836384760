"""Before the launch: what a model folder holds, and what pool and limits a launch of it will give."""
