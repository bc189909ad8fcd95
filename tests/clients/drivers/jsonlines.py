"""The far end for Python clients: calls the method that a line names, and answers with what it returns or raises."""

import json
import sys
import traceback
from typing import Any


def serve(driver: Any) -> None:
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": getattr(driver, request.pop("do"))(**request)}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
    driver.close()
