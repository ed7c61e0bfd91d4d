"""How tallies run where rows are many: in tasks, each over some of the rows, on other machines.

A task makes a tally anew, feeds it its rows, and sends home what it saw as plain arrays. `parcel`
packs, `task` is what runs there, `processes` and `spark` start tasks; `jobs` are tasks that read no
rows, such as the training of some labels. The only place that imports pyspark. May import the
ground floor alone; threads of this machine are `oddslip.core.tally`'.
"""
