"""Work on many lines, divided into blocks: one after another here, or by Ray on many machines.

`block` divides the lines, `work` is done on each block, an executor (`executor`, `on_ray`) says by
whom, and `shards` keeps every block's answers in a file of its own, with a manifest.
"""
