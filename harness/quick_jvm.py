"""Options of JVMs that live for some seconds.

The optimising compiler, a garbage collector with threads of its own, and the verification of the byte code of packages
that Java has always taken take more processor time than such a program needs for its work: a Spark that runs two jobs
used 16.6 s with the first two options, and 12 to 14 s with all of them.
"""

from typing import Final

QUICK_JVM: Final = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",  # before the next one, which is of this kind
    "-XX:-BytecodeVerificationRemote",
)
