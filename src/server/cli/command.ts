import { type ArgsDef, type CommandDef, defineCommand } from "citty";

/** Declares a command. Its arguments are typed for `run`; the result has the same type for all commands. */
export function declareCommand<const Args extends ArgsDef>(command: CommandDef<Args>): CommandDef {
  // citty reads the arguments from `args` at run time; only `run` needs the type parameter.
  return defineCommand(command) as unknown as CommandDef;
}
