"""Code that runs inside the sandbox, next to untrusted programs: nothing it says is believed by the trusted side."""
