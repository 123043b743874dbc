import { type ArgsDef, type CommandDef, defineCommand } from "citty";

/** A command with its arguments typed inside and no longer outside, so that all commands are of one type. */
export function declareCommand<const Args extends ArgsDef>(command: CommandDef<Args>): CommandDef {
  // citty reads the arguments at run time from `args`; the type parameter serves `run` alone.
  return defineCommand(command) as unknown as CommandDef;
}
