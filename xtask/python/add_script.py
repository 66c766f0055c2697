"""Puts a program into a wheel as a script: `python add_script.py WHEEL PROGRAM`.

pip copies it onto the PATH as it is, so that it starts without Python. Everything in the wheel gets the date of
SOURCE_DATE_EPOCH, so that the same content makes the same bytes.
"""

import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile


def main(wheel: pathlib.Path, program: pathlib.Path) -> None:
    with zipfile.ZipFile(wheel) as old:
        files = {info.filename: (old.read(info), info.external_attr >> 16) for info in old.infolist()}
    record = next(name for name in files if name.endswith(".dist-info/RECORD"))
    name_and_version = record.split(".dist-info")[0]
    files[f"{name_and_version}.data/scripts/{program.name}"] = (program.read_bytes(), 0o100755)
    files[record] = (record_of(files, record).encode(), files[record][1])
    date = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        # RECORD comes last, as the format asks.
        for name in sorted(files, key=lambda name: (name == record, name)):
            content, mode = files[name]
            info = zipfile.ZipInfo(name, date)
            info.external_attr = (mode or 0o100644) << 16
            info.compress_type = zipfile.ZIP_DEFLATED
            new.writestr(info, content)


def record_of(files: dict[str, tuple[bytes, int]], record: str) -> str:
    """What RECORD says: the hash and the size of every file but itself."""
    lines = []
    for name in sorted(files):
        if name == record:
            continue
        content = files[name][0]
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}")
    return "\n".join([*lines, f"{record},,"]) + "\n"


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
