"""The words of docs/scale-and-cost.md that are the same whatever a run measures."""

HEAD = """# Scale and cost

<!-- Written by `python -m tests.bench.scale`; change the words in tests/bench/scale/page_words.py. -->

```
python -m tests.bench.scale --json figures.json --page docs/scale-and-cost.md
```

What the deployment of `template.yaml` does and costs from 1 GB/h to 100 GB/s, by a discrete-event model: producers, Kinesis
shards, event source mapping, ingest functions, S3, compaction, questions. CPU and bytes are measured in the same run on
the corpus of the benchmarks; limits and times of AWS are its published ones ({aws}), or assumed on the slow side where
it publishes none; prices are list prices of us-east-1 (`shared/ranklog/objectives/prices.py`). Nothing here was run on
AWS. This page is the command's output of {date}: {machine}, {took} s.
"""

KINDS = """A question is of this mix: {mix}. It looks at whole hours, the one that goes on and the one before: half an hour and an
hour in the mean, of one tenant. Answers that a root keeps, and limits that end a scan early, are not counted on. A dash: S3's
request rates do not carry it, whatever functions there are, or a root takes longer than the HTTP API waits. Roots are warm;
quotas are taken as raised.
"""

WAY_WORDS = """For a TB of text, ingested and kept for 30 days, with {asked} questions a day of each tenant; everything is in: requests,
stream, functions, compaction, storage, the functions' own logs ({logged} bytes an invocation), {alarms} alarms and {metrics}
metrics. The mark is 1/{mark:.0f} of CloudWatch Logs; what misses it is bold. *On demand* is what `template.yaml` deploys unless told;
*advantage* is an account's mode of on-demand streams, with a minimum of 25 MB/s; *provisioned* are shards that the load
fills to a half (its parameter `StreamShards`; at least one, while one on demand has four, so that batches are
fewer and larger); *direct* are agents that put segments
into the bucket themselves, so that ingest is their hosts' CPU. A bill of a size whose
compaction does not keep up is short of that work, and its questions meet small segments.
"""

MARK_WORDS = """By bisection over the model, between 1 GB/h and 1 GB/s of one tenant, with as many hosts as lie between those of the
scenarios; exact to 7%. Above the size the mark is kept, below it is not. Where it lies above what one tenant's compactor
keeps up with (twice 1 TB/day, by its share of a function above), the bill is short of compaction that would cost what it does at
1 TB/day:
"""

FLOOR_WORDS = """What stands in the way below it is there before ranklog does anything: what AWS bills for the stream itself.
A shard and what it keeps beyond a day cost the same whether it is full or empty, as do alarms, metrics and dashboard
of a stack; on-demand streams bill each byte put, read and kept, and frames have 0.28 bytes and more for one of text. Bold is
what lies above the whole mark by itself:
"""

APPROACH_WORDS = """So below some size one stack for several teams (tenants share shards, alarms and functions, and each its own
keys and folder) is what makes logs cheap, and a window of 60 s in place of 5 s what makes its requests few. On-demand streams can
only be made cheaper by fewer bytes. Two ways to that were measured, and both cost the hosts: a higher level of zstd (agents use 1)
takes CPU from training, fuller frames take time, as a host has to gather lines for longer. A price without the
records' rounding up to a KiB, and before anything else of the bill:
"""

PEER_WORDS = """
Both are taken to run on machines of 4 vCPUs that are half full ($0.048 a vCPU hour), with 30 days of their bytes on two gp3
disks ($0.08 a GB-month), without the people who run them and, but for what Loki's page counts, without questions.
VictoriaLogs holds 300,000 lines here, in small parts that it would still merge: its bytes fall with more. Loki's binary
was not there; its CPU is the sum of its page's table for up to 3 TB a day, at half of it, its bytes a seventh of the text.
"""

CHECK_WORDS = """The model with local parameters against ranklog over SeaweedFS on this machine: two shards, a window of 1 s; questions to
one root, alone and at half of what it can answer. Both sides are within {tolerance}, but for what is bold:
"""

CLOSING = """
## What the model leaves out

- Frames of a host come evenly; bursts of a whole job (all ranks fail at once) are not in it.
- A Lambda vCPU is taken to be as fast as a core of the machine that measured.
- S3 answers in 0.1 s in the median and 0.25 s at the 99th percentile, as its guidelines say of small requests; often it is faster.
- Data that leaves the region, NAT gateways, VPC endpoints and support.
"""
