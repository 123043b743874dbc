import { TransformKind, type TSchema, TypeRegistry } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import { arrayVisit, type Compile, type Others, objectVisit } from "./containers.ts";
import { REFUSED, type Visit } from "./run.ts";
import { booleanVisit, choiceVisit, nullVisit, numberVisit, stringVisit } from "./scalars.ts";
import { kindOf, type Schema, textualOf } from "./schema.ts";
import { intersectVisit, unionVisit } from "./unions.ts";

/** Schemas by the names under which others refer to them. */
type Names = Readonly<Record<string, Schema>>;

/**
 * Compiles a schema into a validator. `models`: those of the Elysia instance. `others`: the policy for members of the outermost
 * object that the schema does not name; those of inner objects are refused, unless the schema allows them.
 */
export function compileSchema(schema: Schema, models: () => Names, others: Others): Visit {
  return new Compiler(models).visitOf(schema, others);
}

class Compiler {
  readonly #models: () => Names;
  readonly #names: Record<string, Schema> = Object.create(null);
  readonly #compiled = new Map<Schema, Visit>();
  readonly #compile: Compile = (schema) => this.visitOf(schema, "refuse");

  constructor(models: () => Names) {
    this.#models = models;
  }

  visitOf(schema: Schema, others: Others): Visit {
    const known = others === "refuse" ? this.#compiled.get(schema) : undefined;
    if (known !== undefined) return known;
    if (schema.$id !== undefined) this.#names[schema.$id] = schema;
    Object.assign(this.#names, schema.$defs);
    const visit = this.#made(schema, others);
    if (others === "refuse") this.#compiled.set(schema, visit);
    return visit;
  }

  #made(schema: Schema, others: Others): Visit {
    if (schema.noValidate === true) return (value) => value;
    const textual = textualOf(schema);
    const inner = textual === null ? this.#ofKind(schema, others) : this.#ofTextual(textual);
    const decoding = schema[TransformKind];
    // Elysia's own conversions of objects and lists parse JSON without bounds.
    if (decoding === undefined || (textual !== null && schema.elysiaMeta !== undefined)) return inner;
    return (given, run) => {
      const value = inner(given, run);
      return value === REFUSED ? REFUSED : run.decode(schema, decoding.Decode, value);
    };
  }

  #ofTextual(schema: Schema): Visit {
    const visit = this.#compile(schema);
    return (value, run) => (typeof value === "string" ? run.as("text", () => visit(value, run)) : visit(value, run));
  }

  #ofKind(schema: Schema, others: Others): Visit {
    const { $ref, anyOf = schema.oneOf, allOf, type } = schema;
    const kind = kindOf(schema);
    if (schema.not !== undefined) return byTypeBox(schema);
    if (schema.const !== undefined) return choiceVisit(schema, [schema.const]);
    if (schema.enum !== undefined) return choiceVisit(schema, schema.enum);
    if (TypeRegistry.Has(kind)) return ofOwnKind(schema, kind);
    if ($ref !== undefined) return this.#ofReference(schema, $ref, others);
    if (anyOf !== undefined) {
      const ofMember: Compile = (one) => this.visitOf(one, others);
      return unionVisit(schema, anyOf, ofMember);
    }
    if (allOf !== undefined) return this.#ofIntersect(schema, allOf, others);
    if (kind === "Never") return (_, run) => run.refuse(schema, "unknown_field", "is not a member that is known here");
    switch (type) {
      case "object":
        return objectVisit(schema, this.#compile, others);
      case "array":
        return arrayVisit(schema, this.#compile);
      case "string":
        return stringVisit(schema);
      case "number":
      case "integer":
        return numberVisit(schema);
      case "boolean":
        return booleanVisit(schema);
      case "null":
        return nullVisit(schema);
      case undefined:
        return (value) => value;
      default:
        return byTypeBox(schema);
    }
  }

  /** Compiles a reference with the first value: a schema may refer to itself, and to a model that is added later. */
  #ofReference(schema: Schema, name: string, others: Others): Visit {
    let visit: Visit | null = null;
    return (value, run) => {
      visit ??= this.visitOf(this.#named(schema, name), others);
      return visit(value, run);
    };
  }

  #named(schema: Schema, reference: string): Schema {
    const name = reference.replace(/^#\/(?:\$defs|components\/schemas)\//, "");
    const found = schema.$defs?.[name] ?? this.#names[name] ?? this.#models()[name];
    if (found === undefined) throw new Error(`a schema of a route refers to "${name}", which is no model`);
    return found;
  }

  #ofIntersect(schema: Schema, parts: readonly Schema[], others: Others): Visit {
    const known = new Set<string>();
    const isOpen = !parts.every((part) => this.#addNames(part, known)) || others !== "refuse";
    // Each part leaves members that it does not name to the whole.
    return intersectVisit(
      schema,
      parts.map((part) => this.visitOf(part, "keep")),
      isOpen && schema.unevaluatedProperties !== false ? null : known,
    );
  }

  /** Adds the members that a part of an intersection names. false: the part allows others as well. */
  #addNames(schema: Schema, known: Set<string>): boolean {
    const { $ref, anyOf = schema.oneOf, allOf, properties, patternProperties, additionalProperties } = schema;
    if ($ref !== undefined) return this.#addNames(this.#named(schema, $ref), known);
    const inner = anyOf ?? allOf;
    if (inner !== undefined) return inner.map((one) => this.#addNames(one, known)).every((isClosed) => isClosed);
    for (const name in properties) known.add(name);
    return patternProperties === undefined && (additionalProperties ?? false) === false;
  }
}

/** Validates a type that Elysia or the config has registered, such as a file. */
function ofOwnKind(schema: Schema, kind: string): Visit {
  const takes = TypeRegistry.Get(kind);
  const { extension: types } = schema;
  return (value, run) => {
    if (takes?.(schema, value) !== true) {
      const isFile = kind === "File" || kind === "Files";
      if (!isFile) return run.refuse(schema, "invalid_value", "is not valid");
      const files = Array.isArray(value) ? value : [value];
      if (!files.every((one) => one instanceof Blob)) return run.refuse(schema, "invalid_type", "must be a file");
      return run.refuse(schema, "invalid_value", "must be a file of the size and type that are wanted here");
    }
    if (types !== undefined) run.files.push({ field: run.field, file: value, types });
    return value;
  };
}

/** Validates the remaining schemas: types without a JSON form, and `not`. */
function byTypeBox(schema: Schema): Visit {
  return (value, run) => {
    // `Schema` declares the keywords of TypeBox's own type that are read here.
    return Value.Check(schema as TSchema, value) ? value : run.refuse(schema, "invalid_value", "is not valid");
  };
}
