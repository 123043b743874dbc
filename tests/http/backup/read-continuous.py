"""Restores the newest state of one database from the folder of a continuous backup, by docs/continuous-format.md alone.

Usage: python3 read-continuous.py FOLDER NAME OUTPUT
"""

import glob
import hashlib
import json
import os
import struct
import subprocess
import sys

MAGIC = b"PLATCB01"


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    if hashlib.sha256(data[:-32]).digest() != data[-32:] or data[:8] != MAGIC:
        sys.exit(path + " is damaged")
    (length,) = struct.unpack(">I", data[-36:-32])
    return data, json.loads(data[-36 - length : -36])


def unpack(data, span):
    block = data[span["offset"] : span["offset"] + span["length"]]
    return subprocess.run(["zstd", "-dc"], input=block, stdout=subprocess.PIPE, check=True).stdout


def page_hash(number, page):
    return hashlib.sha256(struct.pack(">I", number) + page).hexdigest()[:16]


def checksum(pages):
    total = 0
    for number, page in pages.items():
        total ^= int(page_hash(number, page), 16)
    return "%016x" % total


def load_copy(path, expected):
    data, description = read(path)
    if hashlib.sha256(data[:-32]).hexdigest() != expected:
        sys.exit(path + " is not the one that the manifest names")
    content = b"".join(unpack(data, block) for block in description["blocks"])
    size = description["pageBytes"]
    return {number + 1: content[number * size : (number + 1) * size] for number in range(description["pages"])}


def apply(pages, head, body):
    size = head["pageBytes"]
    if head["before"] is not None and head["before"] != checksum(pages):
        sys.exit("an entry does not follow the state before it")
    least = head.get("merged", {}).get("least", head["pages"])
    for number in [number for number in pages if number > least]:
        del pages[number]
    for number in range(1, head["pages"] + 1):
        pages.setdefault(number, bytes(size))
    for index, (number, base, result) in enumerate(head["changed"]):
        page = body[index * size : (index + 1) * size]
        if base is not None:
            former = int.from_bytes(pages[number], "big")
            page = (int.from_bytes(page, "big") ^ former).to_bytes(size, "big")
        if page_hash(number, page) != result:
            sys.exit("a page has the wrong hash")
        pages[number] = page
    if head["after"] != checksum(pages):
        sys.exit("the checksum of the file is wrong")


def entries(block):
    start = 0
    while start < len(block):
        line_end = block.index(b"\n", start)
        head = json.loads(block[start:line_end])
        end = line_end + 1 + len(head["changed"]) * head["pageBytes"]
        yield head, block[line_end + 1 : end]
        start = end


def sources(manifest, keys, base):
    """Yields the largest objects that stand for the segments, where they begin behind the base."""
    after = 0
    for key in keys:
        counter = int(key.split("/")[1][:12])
        if counter < after:
            continue
        fitting = [one for one in manifest["merged"] if one["first"] == counter and one["firstPlace"] > base["place"]]
        widest = max(fitting, key=lambda one: one["last"], default={"key": key, "last": counter})
        after = widest["last"] + 1
        yield widest["key"]


def main(folder, name, output):
    _, manifest = read(os.path.join(folder, "manifest"))
    files = [file for file in manifest["files"] if file["path"] == name and file["removed"] is None]
    if not files:
        sys.exit("there is no " + name)
    file, base = files[-1], files[-1]["fulls"][-1]
    ids = [file["id"], *file["formerIds"]]
    keys = [segment["key"] for index in manifest["indexes"] for segment in read(os.path.join(folder, index["key"]))[1]["segments"]]
    keys += [segment["key"] for segment in manifest["segments"]]
    # Segments that were stored after the manifest.
    counter = manifest["segments"][-1]["counter"] if manifest["segments"] else manifest["lastIndexed"]["counter"]
    while True:
        counter += 1
        key = "segments/%012d-%s" % (counter, manifest["incarnation"])
        if not glob.glob(os.path.join(folder, key)):
            break
        keys.append(key)
    pages = None if base["isSegment"] else load_copy(os.path.join(folder, base["key"]), base["sha256"])
    for key in sources(manifest, keys, base):
        data, description = read(os.path.join(folder, key))
        for part in description["parts"]:
            if part["id"] not in ids:
                continue
            for head, body in entries(unpack(data, part)):
                is_base = pages is None and head["kind"] == "full" and head["place"] == base["place"]
                if is_base:
                    pages = {}
                elif pages is None or head["place"] <= base["place"]:
                    continue
                apply(pages, head, body)
    if pages is None:
        sys.exit("the copy of " + name + " is missing")
    with open(output, "wb") as target:
        for number in sorted(pages):
            target.write(pages[number])


main(*sys.argv[1:])
