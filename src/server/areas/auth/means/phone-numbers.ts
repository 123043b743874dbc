import { badField } from "../../../../kernel/errors.ts";
import type { PhonesConfig } from "../../../config/types.ts";

// The library is loaded with the first number: its tables take some hundred KB.

/**
 * Returns a number in E.164. Errors: 400, named `field`, for a text that is no number of a person or service, lacks `+` and the
 * country, or is an emergency or short number.
 */
export async function phoneOf(text: string, field: string): Promise<string> {
  return (await parsed(text, field)).number;
}

/** Returns a number to which texts are sent. Errors: those of `phoneOf`; 400 for a country or beginning that the config does not take. */
export async function reachablePhoneOf(text: string, field: string, config: PhonesConfig): Promise<string> {
  const { number, country } = await parsed(text, field);
  const { countries, refuse = [] } = config;
  const isServed = countries === "all" || (country !== undefined && countries.includes(country));
  if (isServed && !refuse.some((prefix) => number.startsWith(prefix))) return number;
  throw badField(field, "invalid_value", `${field} is a number to which this server sends nothing`);
}

async function parsed(text: string, field: string): Promise<{ number: string; country: string | undefined }> {
  const { default: parse } = await import("libphonenumber-js/max");
  // Extensions, and letters in place of digits, would let two texts be one number.
  const phone = /^\s*\+[\d\s()./-]+$/.test(text) ? parse(text) : undefined;
  if (phone === undefined || !phone.isValid()) {
    throw badField(
      field,
      "invalid_value",
      `${field} must be a phone number with + and the country, such as +43 660 12345678`,
    );
  }
  return { number: phone.number, country: phone.country };
}
