"""Every limit: its unit, why it is what it is, and what happens when it is reached."""

from __future__ import annotations

KIB = 1024
MIB = 1024 * 1024
SECOND_NS = 1_000_000_000
HOUR_NS = 3_600 * SECOND_NS
DAY_NS = 24 * HOUR_NS

# --- frames -----------------------------------------------------------------------------------
# A Kinesis record holds 1 MiB by default, its partition key included; a producer cuts a frame
# before it gets there.
FRAME_BYTES_MAX = 1 * MIB - 1 * KIB
# No stream carries a larger record (Kinesis: 10 MiB, where it is told so); one that comes all the same
# goes to quarantine without a look into it.
FRAME_RECORD_BYTES_MAX = 10 * MIB
# Uncompressed payload of one frame; a frame that claims more is refused before it is unpacked.
FRAME_PAYLOAD_BYTES_MAX = 64 * MIB
# The stream column is uint16.
FRAME_STREAMS_MAX = 65_535
# One piece of a manifest in a frame's header, compressed, and what it may unpack to. A producer
# leaves out packages, then configuration, and says so; a longer one makes a frame corrupt.
MANIFEST_BYTES_MAX = 128 * KIB
MANIFEST_JSON_BYTES_MAX = 4 * MIB
# Pieces of one launch's manifest that a reader reads; of more, the newest attempt's highest ranks.
MANIFEST_PIECES_READ_MAX = 16_384

# --- names ------------------------------------------------------------------------------------
# A tenant's, run's or launch's name in a key, percent-encoded: a file name holds 255 bytes on disk.
# A longer one is refused (a frame with one goes to quarantine).
NAME_BYTES_MAX = 200

# --- lines ------------------------------------------------------------------------------------
# A line longer than this is kept whole; its template is cut here and becomes template 0 when
# it does not fit the dictionary.
TEMPLATE_BYTES_MAX = 1 * KIB
# A longer line is stored and searched like any other, but its tokens are not looked at: taking one
# apart takes 30 times its size. It has template 0, and its row group is doubt for every text.
LINE_ANALYSED_BYTES_MAX = 1 * MIB
# Metadata strings are cut at the producer (interfaces, Python).
METADATA_STRING_BYTES_MAX = 1 * KIB

# --- segments ---------------------------------------------------------------------------------
# More templates than this go to template 0, which matches everything.
TEMPLATES_PER_SEGMENT_MAX = 4_096
TEMPLATES_BYTES_MAX = 1 * MIB
# Smallest unit pruned or scanned: 16-32 k rows measured best (design, index measurements).
ROW_GROUP_ROWS = 32_768
# Points in a row group, and records of points: what a reader of one series unpacks. With 16,384 and 32,768
# such a reader takes a fifth longer, and a segment a twenty-fifth fewer bytes (tests.bench.points).
POINT_GROUP_ROWS, RECORD_GROUP_ROWS = 8_192, 4_096
# Rows of the rarest templates of a segment, which have a row group of their own: a read of what was
# seldom said unpacks so few. More would take frequent templates apart from those that resemble them.
RARE_ROWS_MAX = ROW_GROUP_ROWS // 32
# A segment of more rows is cut into equal spans of time of about this many, so that a range of time
# in a large segment is few row groups. Templates are clustered inside a span.
TIME_BUCKET_ROWS = 32 * ROW_GROUP_ROWS
# A batch's event hours that get a segment of their own; the rest share one "late" segment.
HOURS_PER_BATCH_MAX = 32
# An hour with fewer rows than this shares the late segment, unless it is the batch's largest.
HOUR_ROWS_MIN = 4_096
# A claimed time outside [arrival - 400 days, arrival + 1 h] is kept as ts_claimed and the line is
# filed by arrival, so that a wild clock can't scatter a tenant's partitions. Imports are deliberate
# and exempt from the past bound.
TIME_PAST_NS_MAX = 400 * DAY_NS
TIME_FUTURE_NS_MAX = 1 * HOUR_NS
# Longer tokens and metadata values are not in the blooms: the planner takes them for doubt.
TOKEN_BYTES_MAX = 128
# Distinct templates of envelopes kept per segment; with more, envelopes are doubt.
ENVELOPES_PER_SEGMENT_MAX = 16
# An index's section that claims to unpack to more is refused before it is unpacked.
INDEX_SECTION_BYTES_MAX = 256 * MIB
# Orphan segments are deleted after 7 days by age; a writer that takes longer than this between the
# PUTs of segment and index puts the segment again, so that its age counts from then.
COMMIT_AGE_S_MAX = 300
# An hour marker that this process put, or found there, is put again after this, should somebody have deleted it.
MARKERS_AGE_S_MAX = 600
# Markers of older hours are put with every batch: retention may delete theirs, RETENTION_NOTES_NS after an
# hour's end at the earliest. Half of that is left for clocks that differ.
MARKERS_HOUR_AGE_NS_MAX = 84 * HOUR_NS
# Markers that a process remembers, some 300 bytes each; past it the half that was put first is put again.
MARKERS_KNOWN_MAX = 16_384
# Typed metadata columns per segment; keys beyond it go to the overflow column.
METADATA_COLUMNS_MAX = 256
# A key with fewer values in a segment overflows as well, but for the fullest so many: a column costs
# some 200 bytes of footer, index and pages before its first value.
METADATA_COLUMN_VALUES_MIN = 16
METADATA_COLUMNS_ALWAYS = 32
# Distinct letter runs kept per row group; past it the row group is doubt for one-word literals.
LETTER_RUNS_PER_ROW_GROUP_MAX = 4_096

# A segment of less text has no filters of grams: all of it is scanned in the time that a few row
# groups of a larger one take, and in small segments the index is the larger share.
GRAMS_TEXT_BYTES_MIN = 8 * MIB

# Lines per call site and bucket of time in an index: of these widths, each a multiple of the one before,
# the narrowest with at most so many buckets, and a count (a byte or less) for so many rows at least.
SITE_TIMES_WIDTHS_NS = tuple(s * SECOND_NS for s in (1, 10, 60, 600, 3_600, 86_400))
SITE_TIMES_BUCKETS_MAX = 64
SITE_TIMES_ROWS_PER_COUNT = 16

# A changed rule reaches every ingest within this.
RULES_AGE_S_MAX = 60

# Tenants whose client, with its cached indexes, a root keeps; the one not asked longest goes.
CLIENTS_KEPT_MAX = 32

# --- access -----------------------------------------------------------------------------------
# A revoked API key stops, and a new one works, within this; each is read once in that time.
API_KEY_AGE_NS_MAX = 15 * SECOND_NS
# Keys that a process remembers, 1 KiB each; the one not used longest is looked up again.
API_KEYS_KNOWN_MAX = 4_096
# Keys of a kind that a tenant has, revoked ones included: ingest tries each on a frame, a list reads all.
KEYS_PER_TENANT_MAX = 100
# What a process counted for a tenant is written, and quotas and what other processes counted are read
# again, after this: so late is a quota over several processes.
METER_AGE_S_MAX = 10.0
# Ingest counts for its tenants, too, and writes an object for each: less often where there is no quota.
METER_UNLIMITED_AGE_S = 60.0
# Frames over a tenant's quota that are stored together when there is room: a batch as ingest takes it.
WAITING_FRAMES_PER_BATCH = 1_000
# Quarantine is kept so long after a frame came, and so long after it was stored by `replay`.
QUARANTINE_KEPT_DAYS, REPLAYED_KEPT_DAYS = 30, 7
# Tenants that a process counts for, some 1 KiB each; past it half of the idle ones are forgotten.
METERED_TENANTS_MAX = 4_096
# Ingest reads a tenant's ingest keys again after this: a revoked one verifies nothing from then on.
INGEST_KEYS_AGE_S_MAX = 5.0
# A frame waits in the stream for its retention at most, and a week longer on a node or in quarantine
# that somebody has to look after: so long a rotated key still verifies. template.yaml says the
# retention of its stream; a stream of local mode is taken to have this one.
STREAM_RETENTION_NS = 7 * DAY_NS
ROTATED_KEY_WEEK_NS = 7 * DAY_NS

# --- objectives -------------------------------------------------------------------------------
# What a process measured is written after this: so much is lost with one that is killed. On Lambda each
# write is a PUT beside an answer, so there are fewer.
MEASURES_AGE_S_MAX = 10.0
MEASURES_AGE_LAMBDA_S = 30.0
# An hour of measures is rolled up into one object so long after its end, and deleted after this.
MEASURES_LAG_NS = 600 * SECOND_NS
MEASURES_KEPT_NS = 90 * DAY_NS
# Tenants whose measures a process holds, some 10 KiB each; past it all are written and begun anew.
MEASURED_TENANTS_MAX = 1_024
# Of its time the metrics function keeps so much for the tenant that it is at; the next run goes on.
METRICS_RESERVE_S = 30
# The run of canaries, and how long it is kept where a tenant has no rule for it: the shortest that
# retention takes. Its launches are days.
CANARY_RUN = "ranklog-canary"
CANARY_KEPT_NS = DAY_NS

# --- compaction -------------------------------------------------------------------------------
# What one merge of segments reads, stored and as text: the first is what scans like, the second is
# memory, some five times as much. A larger folder is several merges.
COMPACT_SEGMENT_BYTES_MAX = 128 * MIB
COMPACT_TEXT_BYTES_MAX = 256 * MIB
# A merge that becomes larger than this is broken at runs, so that deleting a run deletes objects; a
# smaller segment is merged again when something comes beside it.
COMPACT_SPLIT_BYTES_MIN = 16 * MIB
# An hour is closed, and a minute, so long after its end: what is on its way arrives meanwhile.
COMPACT_HOUR_LAG_S = 600
COMPACT_MINUTE_LAG_S = 60
# Late arrivals of a day that goes on are merged when so many lie there.
COMPACT_LATE_INDEXES_MIN = 16
# Index objects of a folder and kind after a pass, but for those of the last two minutes; more are
# bundled together, to this size.
COMPACT_OBJECTS_MAX = 64
COMPACT_BUNDLE_BYTES_MAX = 8 * MIB
# Indexes of a folder that a pass fetches side by side: one after the other, a busy tenant's hour takes
# longer to look through than to merge.
COMPACT_GETS_IN_FLIGHT_MAX = 32
# What was replaced is deleted after this: twice the longest that a question may take, which is what a
# Lambda function may, 15 minutes.
COMPACT_GRACE_S = 2 * 900
# Two compactors of one folder do the same work twice, no harm; a lease that old is nobody's.
COMPACT_LEASE_S = 900
# Scheduled on AWS: the hour that runs and so many before it are compacted often, all others rarely.
COMPACT_RECENT_HOURS = 3
# An invocation (15 minutes) begins no folder with less time left than this; the rest is a task of its own.
UPKEEP_RESERVE_S = 300
# Temporary results that nobody took are swept after this.
TMP_KEPT_S = 24 * 3_600
# A segment without an index, by age: an attempt to store it again puts it again (COMMIT_AGE_S_MAX).
ORPHAN_AGE_S_MAX = 7 * 24 * 3_600
# Pointers to what arrived in an hour, by age: a tail that was left for longer begins anew.
POINTER_AGE_S_MAX = 3 * 24 * 3_600
# What processes counted in an hour, for quotas (the hour that runs) and `ranklog usage` (24 of them).
USAGE_KEPT_HOURS = 7 * 24

# --- Kinesis ----------------------------------------------------------------------------------
# One record with its partition key; a stream can be told to take 10 MiB, which we don't ask for.
KINESIS_RECORD_BYTES_MAX = 1 * MIB
# One PutRecords call; more frames are more calls.
KINESIS_CALL_RECORDS_MAX = 500
KINESIS_CALL_BYTES_MAX = 5 * MIB
# A frame that is refused this often is reported as not accepted, and the caller keeps it.
KINESIS_ATTEMPTS_MAX = 8
KINESIS_WAIT_S_MAX = 5.0

# --- stores -----------------------------------------------------------------------------------
# What a request needs of the store before its own work (its key, quota, seal) is there within this, or the
# answer is 503: an agent gives up after 10 s. Then nobody asks for a moment; calls that may hang at once.
STORE_PROMPT_S_MAX = 4.0
STORE_AWAY_S = 2.0
STORE_PROMPT_CALLS_MAX = 64
# A frame that goes straight into a store is committed within this, or the answer is 503. The commit may still
# succeed: the agent keeps the frame, sends it again, and it is stored once.
FRAME_COMMIT_S_MAX = 6.0
# S3 refuses a longer key (in UTF-8 bytes); every store refuses it, so that a store can be moved.
KEY_BYTES_MAX = 1_024
# A temporary file that old belongs to a writer that died; opening a disk store removes it.
TEMPORARY_AGE_S_MAX = 24 * 3_600

# Frames of one ingest batch in local mode: what a Lambda event of 6 MB holds of raw bytes.
LOCAL_BATCH_BYTES_MAX = 4_500_000

# --- queries ----------------------------------------------------------------------------------
QUERY_BYTES_MAX = 8 * KIB
QUERY_DEPTH_MAX = 32
QUERY_TERMS_MAX = 64
QUERY_LIMIT_DEFAULT = 1_000
# Lambda refuses a payload over 6 MB; an outcome over this goes to the store and is named instead.
PAYLOAD_BYTES_MAX = 6 * 1000 * 1000
OUTCOME_INLINE_BYTES_MAX = 5 * 1000 * 1000
# Rows of an inner query of near(...); over it the query is refused with this number.
NEAR_MATCHES_MAX = 100_000
# Values of a series that spike(...) looks at; over it the query is refused.
SPIKE_VALUES_MAX = 1_000_000
# The same of points as columns: some 2 s of a core per million.
SPIKE_POINTS_MAX = 16_000_000
# A value's running median and MAD are of this many values before it in its own series, and of at
# least the minimum: fewer say nothing.
SPIKE_WINDOW_VALUES = 64
SPIKE_WINDOW_VALUES_MIN = 8
# Points of a series that an answer has where the caller names no number: twice the columns of a wide
# picture. Fewer than the minimum could not keep both ends and both extremes of two stretches.
SERIES_POINTS_DEFAULT = 2_000
SERIES_POINTS_MIN = 8
# Points that one question reads; over it the question is refused: 16 of these columns are in memory.
SERIES_READ_POINTS_MAX = 100_000_000
# Neighbours on either side of a match.
CONTEXT_LINES_MAX = 1_000
# Tasks in flight at once from one query root.
SCATTER_CONCURRENCY_MAX = 64
SCAN_RETRIES_MAX = 2
# A task is a straggler when it takes longer than this, and so many times the median of the others; it
# is sent once more, and of so many tasks one at most (at least one): a slow store is not made slower.
HEDGE_AFTER_S_MIN = 2.0
HEDGE_AFTER_MEDIANS = 3.0
HEDGE_ONE_OF = 8
# Segments that a query had no time for and that a cursor names (11 bytes each); with more of them the
# page ends before the first line that one of them may hold.
CURSOR_LATE_MAX = 400
# Memory of one statement of user SQL; a larger one is refused by DuckDB.
SQL_MEMORY_BYTES_MAX = 2 * 1024 * MIB
# One statement, and what it may answer: the answer is Arrow in our memory, which DuckDB's limit does not
# count. Over either it is refused.
SQL_BYTES_MAX = 64 * KIB
SQL_RESULT_BYTES_MAX = 512 * MIB
# A statement has the time of a task, or what --timeout says; then DuckDB is asked to stop for so long,
# and is left to itself where it does not: the error is raised without it.
SQL_STOP_S_MAX = 5.0
# Other ranks whose values tell how odd a compared one is, and lines read of them.
COMPARE_PEERS_MAX = 6
COMPARE_PEER_LINES_MAX = 50_000
# Lines of one compared side that are fetched whole and compared in plain Python; over it columns are
# (client/comparison_columns), of at most so many lines; over that the query must be narrowed.
COMPARE_LINES_MAX = 50_000
COMPARE_COLUMN_LINES_MAX = 4_000_000
# Lines that triage reads of a run: those that may speak of a fault, and those that count iterations;
# of more the newest, and the answer says so. About 1.5 KB of memory each.
TRIAGE_EVIDENCE_MAX = 60_000
TRIAGE_STEPS_MAX = 40_000
# Lines of stack dumps and flight recorders that triage reads, the newest: 1,024 ranks of two hundred.
TRIAGE_DUMPS_MAX = 200_000
# Points of losses and times of ranks that triage looks at, the newest segments of them: some 60 bytes
# each. Those that tell something become lines, no more than TRIAGE_STEPS_MAX and the turns of a series.
TRIAGE_POINTS_MAX = 4_000_000
# A flight recorder dump that is imported: it is read whole. Over it the file is refused.
FLIGHT_BYTES_MAX = 256 * MIB
FLIGHT_ENTRIES_MAX = 200_000
# Lines of stack dumps that one answer reads, the newest: 4,096 ranks of a hundred frames each.
STACK_LINES_MAX = 500_000
# Templates that --mute-common leaves out, the most frequent ones; of more the answer says so.
MUTED_SITES_MAX = 500
# Ranks of one job, ten times the largest there is; a stream that claims more claims nothing.
WORLD_RANKS_MAX = 1_000_000
# Lists in a completeness are cut here, with "more": N.
COMPLETENESS_LIST_MAX = 100
# Lines of a match's group that an answer shows beside it; longer groups are cut there.
GROUP_LINES_MAX = 256
# Distinct groups one answer counts; over it the query is refused.
GROUPS_MAX = 100_000
# What a task should read: small enough to spread, large enough to be worth a call.
TASK_BYTES_TARGET = 64 * MIB
# Segments of one task, so that one slow task is no large part of an answer.
TASK_SEGMENTS_MAX = 64
# A gap between two byte ranges that is read through: a GET costs more (design, Scanning).
RANGE_GAP_BYTES_MAX = 256 * KIB
RANGE_GETS_IN_FLIGHT_MAX = 16
# Byte ranges of local files that a process remembers as undamaged: a tenth of a KiB each.
CHECKED_RANGES_MAX = 200_000
# Parquet footers of segments that a process remembers, some 30 KiB each.
FOOTERS_KEPT_MAX = 512
# What a process keeps of columns and pages of text that it unpacked: a question for few lines of two large
# segments unpacks some 30 MiB. More is forgotten, and unpacked again.
DECODED_BYTES_MAX = 64 * MIB
# Streams that a process knows again when it reads the next index, some 300 bytes each.
STREAMS_KNOWN_MAX = 16_384
# One task's time; a slower one is interrupted and reported.
TASK_SECONDS_MAX = 120.0
# On Lambda: less than the scan function's 60 s, and what a root keeps of its own time to merge and
# answer. Without them Lambda would end both, and nobody would be told what was read.
LAMBDA_TASK_SECONDS_MAX = 50.0
LAMBDA_ANSWER_SECONDS = 5.0
# Memory for indexes that a reader keeps, least recently used dropped first.
INDEX_CACHE_BYTES_MAX = 512 * MIB
INDEX_GETS_IN_FLIGHT_MAX = 32
# Indexes of S3 stores kept as files, all stores together (never more than half of what is free); the
# ones not used longest go first.
INDEX_FILES_BYTES_MAX = 1024 * MIB
# Answers that `ranklog serve` and the root functions keep per tenant for the same question asked
# again; one that takes more than an eighth is not kept.
RESULTS_BYTES_MAX = 64 * MIB
# Without a run and without a time, the newest hours that hold data.
DEFAULT_WINDOW_HOURS = 24
# Questions per core that one process works on at once where it scans itself; more wait. Threads of
# Python take turns, and each that waits for its turn wakes 200 times a second: 200 questions at once
# took a third more CPU than one after the other, four at a time on two cores take none.
QUERIES_PER_CORE_MAX = 2
# Keys whose min, max, mean and quantiles one answer tells: each is some 7 columns of a scan. More are
# refused.
STATS_MAX = 16
# Histogram buckets one answer prints; over it the query is refused.
BUCKETS_MAX = 100_000

# --- deletion ---------------------------------------------------------------------------------
# Seq ranges of one tombstone: every question of the tenant reads them (some 6 bytes each), and scans
# where they are get them as rows to skip. A deletion of more is refused.
TOMBSTONE_RANGES_MAX = 100_000
# Small tombstones that are left before they are merged into one of at most so many bytes: a question LISTs
# all and reads each once. Retention leaves one an hour.
TOMBSTONES_MAX = 64
TOMBSTONE_BYTES_MAX = 4 * MIB
# The shortest time that lines can be kept: what a producer and a stream hold back for a while must not
# be refused when it comes.
RETENTION_NS_MIN = DAY_NS
# What a merge or a note of streams says is kept so long after the floor passed it by: until then a copy of
# what it replaced may come back.
RETENTION_NOTES_NS = 7 * DAY_NS
# Objects whose rows are all deleted go so long after the tombstone: questions that were asked before it
# (900 s at most) and what reads for them have ended, twice over.
REMOVAL_GRACE_S = 1_800

# --- tail -------------------------------------------------------------------------------------
# Streams that a tail remembers (some 200 bytes each); the one not heard of longest is forgotten, and
# looked up in the store when it speaks again.
TAIL_STREAMS_MAX = 50_000
# Holes remembered of one stream; the oldest is closed, and what comes for it later is not shown.
TAIL_HOLES_MAX = 4_096
# Lines looked at in one round, so that a large import that a tail meets is shown bit by bit.
TAIL_ROWS_MAX = 16_384
# Lines looked at for one answer of GET /v1/tail, and how long it waits for some at most: an HTTP API
# of API Gateway gives up after 30 s.
TAIL_PAGE_ROWS_MAX = 4_096
TAIL_WAIT_S_MAX = 20.0
# A round of a tail that can't read a segment is repeated this often; then the segment is named.
TAIL_TRIES_MAX = 6

# --- rules ------------------------------------------------------------------------------------
# A rules file and one expression; over it the file is refused. RE2 is linear, its programs are not.
RULE_FILE_BYTES_MAX = 256 * KIB
RULE_PATTERN_BYTES_MAX = 4 * KIB
RULES_PER_TENANT_MAX = 256
# Distinct keys that one rule may take from the key-value lists of one batch; the rest is left out
# and counted, so that a list with ids for keys can't flood the columns.
RULE_KEYS_PER_BATCH_MAX = 512
# Pairs that are read from one line; a longer list is cut.
RULE_PAIRS_PER_LINE_MAX = 256

# --- HTTP API ---------------------------------------------------------------------------------
# Body of one request: a Lambda payload of 6 MB holds 4.5 MB in base64. Over it: 413.
REQUEST_BYTES_MAX = 4_500_000
# Body of one response: JSON inside Lambda's JSON, quotes escaped, under its 6 MB. A longer page of
# lines is cut and has a cursor.
RESPONSE_BYTES_MAX = 4_500_000
# Lines of one page where no limit is given; the next page has a cursor.
API_PAGE_LINES_MAX = 10_000
# Segments that one audit through the API reads: a minute's work. Over it: a run at a time, or the store.
API_AUDIT_BYTES_MAX = 1 << 30
# Records of the quarantine that one request stores; `left` says how many wait.
QUARANTINE_REPLAY_MAX = 1_000
