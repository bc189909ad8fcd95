"""The remedy for an error of the disk: what an operator does before the broker starts again."""

import errno
from typing import Final

REPAIR: Final = "Repair its disk"
REMEDIES: Final = {
    errno.ENOSPC: "Free space on its disk",
    errno.EDQUOT: "Free space on its disk, or raise the quota of the broker's user",
    errno.EROFS: "Find in the kernel's log (`dmesg`) why its disk is read-only, remount it writable",
    errno.ENODEV: "Mount its disk at this path again",
    errno.EACCES: "Let the broker's user read and write it",
    errno.EPERM: "Let the broker's user read and write it",
    errno.EMFILE: "Raise the limit of open files (`ulimit -n`, LimitNOFILE in systemd)",
    errno.ENFILE: "Raise the machine's limit of open files (`sysctl fs.file-max`)",
}
"""By error number. Source: errno(3), and mount(8), `errors=`: the kernel makes a file system with errors read-only."""


def remedy(error: OSError) -> str:
    """The first half of a sentence that goes on with "and restart the broker"."""
    return REMEDIES.get(error.errno or 0, REPAIR)
