import { Type } from "typebox";
import { type Endpoint, endpoint } from "../../../http/endpoint.ts";
import type { TokenKeys } from "../means/token-keys.ts";
import type { AuthDeps } from "../sessions/deps.ts";

const common = { tag: "Auth", caller: "open", place: "none" } as const;
const JWKS_PATH = "/.well-known/jwks.json";

const PublicKey = Type.Object({
  kty: Type.Literal("EC"),
  crv: Type.Literal("P-256"),
  x: Type.String(),
  y: Type.String(),
  kid: Type.String(),
  alg: Type.Literal("ES256"),
  use: Type.Literal("sig"),
});

/** Returns the endpoints that tell others how to verify access tokens. [AU320] */
export function tokenKeyEndpoints({ config, publicUrl }: AuthDeps, keys: TokenKeys): readonly Endpoint[] {
  return [
    endpoint(
      `GET ${JWKS_PATH}`,
      {
        ...common,
        summary: "List the public keys of access tokens",
        description: "Newest first; a key stays until the last token that it has signed has expired.",
        answers: { 200: Type.Object({ keys: Type.Array(PublicKey) }) },
      },
      ({ query }) => {
        query();
        return { keys: keys.published };
      },
    ),
    endpoint(
      "GET /.well-known/openid-configuration",
      {
        ...common,
        summary: "Describe the issuer of access tokens",
        description: "Not an OpenID provider: it names the issuer and where its keys are.",
        answers: {
          200: Type.Object({
            issuer: Type.String(),
            jwks_uri: Type.String(),
            id_token_signing_alg_values_supported: Type.Array(Type.Literal("ES256")),
            subject_types_supported: Type.Array(Type.Literal("public")),
            response_types_supported: Type.Array(Type.String()),
          }),
        },
      },
      ({ query }) => {
        query();
        return {
          issuer: config.tokens?.issuer ?? publicUrl(),
          jwks_uri: `${publicUrl()}${JWKS_PATH}`,
          id_token_signing_alg_values_supported: ["ES256"],
          subject_types_supported: ["public"],
          response_types_supported: [],
        };
      },
    ),
  ];
}
