"""Where dialogs are made: in this process, or in many on a Ray cluster. One file each."""
