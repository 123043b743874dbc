package platform.client

import kotlinx.serialization.json.JsonArray
import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonObject

/** Conditions and groups, all of which must match. */
public class Filter internal constructor(internal val elements: List<JsonElement>) {
    /** Returns a filter of both, which must match together. */
    public infix fun and(other: Filter): Filter = Filter(elements + other.elements)

    internal fun toJson(): JsonArray = JsonArray(elements)

    override fun toString(): String = toJson().toString()

    override fun equals(other: Any?): Boolean = other is Filter && other.elements == elements

    override fun hashCode(): Int = elements.hashCode()
}

/**
 * Compares a field: `condition("year", ">=", 1990)`. Operators are `==`, `!=`, `>`, `>=`, `<`, `<=`, `in`, `not in`, `contains`,
 * `icontains`, `startsWith`, `istartsWith`, `has`, `hasAny`, `hasAll`, `within` and `inBox`.
 */
public fun condition(field: String, operator: String, value: Any?): Filter = Filter(listOf(jsonOf(listOf(field, operator, value))))

/** Matches where one of the filters does. */
public fun anyOf(vararg filters: Filter): Filter = group("or", filters)

/** Matches where all of the filters do. */
public fun allOf(vararg filters: Filter): Filter = group("and", filters)

/** Matches exactly the records that the filter does not match, those with nulls too. */
public fun noneOf(filter: Filter): Filter = Filter(listOf(JsonObject(mapOf("not" to filter.toJson()))))

/** Matches where a record of another table does: `some("reviews", condition("filmId", "==", field("id")))`. */
public fun some(table: String, where: Filter): Filter = relation("some", table, where)

/** Matches where no record of another table does. */
public fun none(table: String, where: Filter): Filter = relation("none", table, where)

/** Stands for a field of the record, in the conditions of [some] and [none]. */
public fun field(name: String): Any = jsonOf(mapOf("field" to name))

private fun group(name: String, filters: Array<out Filter>) =
    Filter(listOf(JsonObject(mapOf(name to JsonArray(filters.map { it.toJson() })))))

private fun relation(name: String, table: String, where: Filter) =
    Filter(listOf(jsonOf(mapOf(name to mapOf("table" to table, "where" to where)))))

/** Adds to a number, atomically. */
public fun increment(value: Number = 1): Any = operation("increment", value)

/** Clears a field. */
public fun deleteField(): Any = jsonOf(mapOf("\$op" to "deleteField"))

/** Adds an id to several references. */
public fun add(id: String): Any = operation("add", id)

/** Takes an id out of several references. */
public fun remove(id: String): Any = operation("remove", id)

private fun operation(name: String, value: Any): Any = jsonOf(mapOf("\$op" to name, "value" to value))
