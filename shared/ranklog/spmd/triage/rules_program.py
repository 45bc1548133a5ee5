"""Words of programs: what they read and write, import and are told, their numbers, their crashes."""

from __future__ import annotations

from ranklog.spmd.triage.rule import make_rule as _rule

PROGRAM_RULES = (
    _rule(
        "data_loader",
        "DataLoader worker|DataLoader timed out|Critical error in pipeline|[/opt/dali|items of ancdata"
        "|shared memory object|cannot identify image file|magic bytes not found"
        "|number of bytes from shm",
        r"DataLoader worker ?\(pid(?:\(s\))?[^)]*\) (?:exited|is killed)|in DataLoader worker process"
        r"|DataLoader timed out after|Critical error in pipeline|DataLoader worker .*killed by signal"
        r"|received \d+ items of ancdata|unable to open shared memory object"
        r"|cannot identify image file|[Mm]agic bytes not found",
        "data_loader",
    ),
    _rule(
        "nan_check",
        # the rest of what it knows stands on lines of level ERROR, which are all fetched
        "found NaN|Unexpected result|oss is nan|oss is NaN|oss is inf|oss scale already at minimum"
        "|inimum loss scale reached",
        r"found NaN in local|Unexpected result (?:nan|inf)|(?:NaN|Inf)s? (?:or \w+ )?(?:in|found|detected)"
        r"|(?i:\b(?:loss|grad(?:ient)?s?|grad[ _]norm|output|activations?)\b.{0,40}"
        r"\b(?:nan|inf|infinite|non-finite|not finite)\b)|(?:nan|NaN) (?:loss|gradient)"
        r"|(?i:\b(?:returned|detected|encountered|contains?|produced) (?:an? )?(?:nan|inf)s?\b)"
        r"|(?i:loss scale already at minimum|minimum loss scale reached)|FloatingPointError",
        "numeric",
    ),
    _rule(
        "file_system",
        "No space left|Input/output error|Stale file handle|Stale NFS|Read-only file system"
        "|Disk quota exceeded|Remote I/O error|Transport endpoint is not connected|not responding"
        "|LustreError|PytorchStreamWriter failed|inline_container.cc|iostream error|I/O error"
        "|when calling the ",
        r"No space left on device|Input/output error|Stale (?:NFS )?file handle|Read-only file system"
        r"|Disk quota exceeded|Remote I/O error|Transport endpoint is not connected"
        r"|nfs: server \S+ not responding|LustreError|PytorchStreamWriter failed writing"
        r"|inline_container\.cc.*(?:unexpected pos|fwrite|write)|iostream error|(?:dev|sector).*I/O error"
        r"|when calling the (?:\w*Object\w*|\w*Multipart\w*|UploadPart) operation",
        "storage",
    ),
    _rule(
        "pod_storage",
        "ephemeral-storage|MountVolume|AttachVolume",
        r"low on resource: ephemeral-storage|(?:Mount|Attach)Volume\.\w+ failed",
        "storage",
    ),
    _rule(
        "broken_file",
        "PytorchStreamReader failed|SafetensorError|invalid load key|Ran out of input|pickle data was",
        r"PytorchStreamReader failed|SafetensorError: |UnpicklingError: |EOFError: Ran out of input",
        "storage",
    ),
    _rule(
        "save_failed",
        "CheckpointException ranks",
        r"CheckpointException ranks: ?(?:dict_keys\()?\[(?P<ranks>\d[\d, ]*)\]",
        "storage",
    ),
    _rule(
        "no_file",
        "No such file or directory|FileNotFoundError|does not exist|Could not open file"
        "|Permission denied",
        r"No such file or directory|FileNotFoundError|Could not open file"
        r"|(?:[Ff]ile|[Dd]irectory|[Pp]ath|[Dd]ataset|[Cc]heckpoint) .{0,200}does not exist"
        r"|Errno 13\] Permission denied",
        "import_or_config",
    ),
    _rule(
        "no_module",
        "ModuleNotFoundError|ImportError|cannot open shared object|undefined symbol",
        r"ModuleNotFoundError|ImportError|cannot open shared object file|undefined symbol",
        "import_or_config",
    ),
    _rule(
        "bad_argument",
        "unrecognized arguments|error: argument|the following arguments are required"
        "|invalid choice|is not divisible|must be divisible",
        r"error: (?:unrecognized arguments|argument |the following arguments are required)"
        r"|is not divisible by|must be divisible by",
        "import_or_config",
    ),
    _rule(
        "bad_setup",
        "no kernel image is available|driver on your system is too old|driver version is insufficient"
        "|invalid device ordinal|Duplicate GPU detected|no socket interface found"
        "|usable network interface|EADDRINUSE|ddress already in use|Mismatched NCCL version"
        "|ImagePullBackOff|ErrImagePull|InvalidImageName|CreateContainerConfigError"
        "|cuDNN version incompatibility",
        r"no kernel image is available|driver on your system is too old|driver version is insufficient"
        r"|invalid device ordinal|Duplicate GPU detected|no (?:socket|usable network) interface"
        r"|server socket .*(?i:address already in use)|Mismatched NCCL version|ErrImagePull"
        r"|ImagePullBackOff|InvalidImageName|CreateContainerConfigError|cuDNN version incompatibility"
        r"|OSError: \[Errno 98\] Address already in use",
        "import_or_config",
    ),
    _rule(
        "crash",
        "Segmentation fault|Caught signal|Fatal Python error|Bus error|Illegal instruction"
        "|segfault at|double free|free(): |core dumped|general protection|illegal memory access"
        "|misaligned address|Memory access fault by GPU|malloc(|malloc_consolidate|munmap_chunk"
        "|corrupted size vs|stack smashing|realloc(): ",
        r"Segmentation fault|Caught signal (?P<signal>\d+)|Fatal Python error: [^A]"
        r"|\bBus error|Illegal instruction|\]: segfault at|double free or corruption"
        r"|free\(\): invalid|general protection fault|illegal memory access was encountered"
        r"|CUDA error: misaligned address|Memory access fault by GPU|malloc\(\): \w"
        r"|(?:realloc|munmap_chunk|malloc_consolidate)\(\): \w|corrupted size vs\. prev_size"
        r"|stack smashing detected",
        "crash_signal",
    ),
)
