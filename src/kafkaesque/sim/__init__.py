"""A whole cluster on simulated disks, network and clocks, from one seed."""
