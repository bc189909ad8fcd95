"""What tests fork: it says with what it was started, and ends as it is told."""

import json
import os
import sys
import time

if __name__ == "__main__":
    print(
        json.dumps([sys.argv[1:], os.environ.get("SAID"), os.getcwd(), sorted(os.listdir("/proc/self/fd"))]), flush=True
    )
    print("to the log", file=sys.stderr)
    if sys.argv[1] == "hang":
        time.sleep(600)
    sys.exit(int(sys.argv[1]))
