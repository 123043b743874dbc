import { dlopen, ptr } from "bun:ffi";
import { readdirSync } from "node:fs";

/** Names of the C library: glibc, and musl as its packages call it. */
const LIBRARIES = ["libc.so.6", `libc.musl-${process.arch === "arm64" ? "aarch64" : "x86_64"}.so.1`];
/** From Linux's headers. */
const SOL_SOCKET = 1;
const SO_ACCEPTCONN = 30;
const SO_ATTACH_REUSEPORT_CBPF = 51;
/** One instruction of a packet filter: return a constant. */
const BPF_RETURN = 0x06;
const INSTRUCTION_BYTES = 8;
const PROGRAM_BYTES = 16;

const SYMBOLS = {
  setsockopt: { args: ["i32", "i32", "i32", "ptr", "u32"], returns: "i32" },
  getsockopt: { args: ["i32", "i32", "i32", "ptr", "ptr"], returns: "i32" },
} as const;

/** Says which one of several sockets that listen on one port gets new connections. */
export interface Steering {
  /** The sockets of this process that listen. */
  listening(): Set<number>;
  /** All new connections go to the socket that joined the port's group at this index. Returns whether the system supports it. */
  steer(socket: number, index: number): boolean;
}

/**
 * Linux spreads the connections of a port over its listening sockets, and resets those that wait in the queue of one that
 * closes: about three of each renewal under load, as measured. A filter that selects the new socket empties the queue of the old
 * one first. null where there is no such filter: other systems, or a C library that is not found.
 */
export function createSteering(): Steering | null {
  if (process.platform !== "linux") return null;
  const library = loadLibrary();
  if (library === null) return null;
  const isListening = (descriptor: number): boolean => {
    const value = new Int32Array(1);
    const length = new Uint32Array([value.byteLength]);
    return library.getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, ptr(value), ptr(length)) === 0 && value[0] === 1;
  };
  return {
    listening: () => new Set(openDescriptors().filter(isListening)),
    steer(socket, index) {
      const instruction = new DataView(new ArrayBuffer(INSTRUCTION_BYTES));
      instruction.setUint16(0, BPF_RETURN, true);
      instruction.setUint32(4, index, true);
      const program = new DataView(new ArrayBuffer(PROGRAM_BYTES));
      program.setUint16(0, 1, true);
      program.setBigUint64(8, BigInt(ptr(instruction)), true);
      return library.setsockopt(socket, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, ptr(program), PROGRAM_BYTES) === 0;
    },
  };
}

function loadLibrary() {
  for (const name of LIBRARIES) {
    try {
      return dlopen(name, SYMBOLS).symbols;
    } catch {
      // The next one.
    }
  }
  return null;
}

function openDescriptors(): number[] {
  try {
    return readdirSync("/proc/self/fd").map(Number);
  } catch {
    return [];
  }
}
