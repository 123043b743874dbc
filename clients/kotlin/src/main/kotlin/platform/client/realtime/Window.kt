package platform.client.realtime

import kotlinx.serialization.json.JsonElement
import kotlinx.serialization.json.JsonNull
import kotlinx.serialization.json.JsonObject
import kotlinx.serialization.json.JsonPrimitive
import platform.client.Direction

/**
 * First records of an order, as far as they are known: with [hasMore], every record up to the last one is here, and those beyond it are
 * unknown. Changes that are applied in order keep this true, so the records become those of the server.
 */
internal class Window(private val order: Comparator<JsonObject>, private val limit: Int, private val spare: Int) {
    private val records = ArrayList<JsonObject>()
    private val byId = HashMap<String, JsonObject>()
    private var hasMore = true

    /** Records that are shown. */
    val shown: List<JsonObject> get() = records.take(limit)

    /** Whether it has to be loaded again to be full. */
    val isShort: Boolean get() = hasMore && records.size < limit

    fun replace(list: List<JsonObject>, hasMore: Boolean) {
        records.clear()
        byId.clear()
        records += list
        list.forEach { byId[idOf(it)] = it }
        this.hasMore = hasMore
    }

    fun put(record: JsonObject) {
        remove(idOf(record))
        val place = placeOf(record)
        if (hasMore && place == records.size) return
        records.add(place, record)
        byId[idOf(record)] = record
        if (records.size > limit + 2 * spare) cut()
    }

    fun remove(id: String) {
        val record = byId.remove(id) ?: return
        val place = placeOf(record)
        // They differ only where two orders of the server and of this program do.
        if (records.getOrNull(place) === record) records.removeAt(place) else records.removeAll { it === record }
    }

    private fun placeOf(record: JsonObject): Int {
        val found = records.binarySearch(record, order)
        return if (found < 0) -found - 1 else found
    }

    private fun cut() {
        val gone = records.subList(limit + spare, records.size)
        gone.forEach { byId.remove(idOf(it)) }
        gone.clear()
        hasMore = true
    }
}

/** Compares records as lists of the server are ordered: a field counts once, and the id has the direction of the last term. */
internal fun orderOf(sort: List<Pair<String, Direction>>): Comparator<JsonObject> {
    val once = sort.distinctBy { (field) -> field }
    val used = once.take(once.indexOfFirst { (field) -> field == "id" } + 1).ifEmpty { once }
    val terms = if (used.any { (field) -> field == "id" }) used else used + ("id" to (used.lastOrNull()?.second ?: Direction.ASC))
    val paths = terms.map { (field, direction) -> field.split(".") to direction }
    return Comparator { left, right ->
        paths.firstNotNullOfOrNull { (path, direction) ->
            val compared = compareValues(valueAt(left, path), valueAt(right, path))
            if (compared == 0) null else if (direction == Direction.ASC) compared else -compared
        } ?: 0
    }
}

private fun valueAt(record: JsonObject, path: List<String>): JsonElement? {
    var value: JsonElement? = record
    for (name in path) value = (value as? JsonObject)?.get(name)
    return value
}

/** Compares in ascending order: null, then numbers and booleans, then texts by code point. */
private fun compareValues(left: JsonElement?, right: JsonElement?): Int {
    val (first, second) = kindOf(left) to kindOf(right)
    return when {
        first != second -> first.compareTo(second)
        first == 1 -> numberOf(left).compareTo(numberOf(right))
        first == 2 -> compareTexts(textOf(left), textOf(right))
        else -> 0
    }
}

private fun kindOf(value: JsonElement?): Int = when {
    value == null || value is JsonNull -> 0
    value is JsonPrimitive && !value.isString -> 1
    else -> 2
}

private fun numberOf(value: JsonElement?): Double = when (val content = (value as JsonPrimitive).content) {
    "true" -> 1.0
    "false" -> 0.0
    else -> content.toDouble()
}

/** Objects and lists count as their JSON. */
private fun textOf(value: JsonElement?): String = (value as? JsonPrimitive)?.content ?: value.toString()

/** Compares by code point, where Kotlin compares the halves of surrogate pairs. */
private fun compareTexts(left: String, right: String): Int {
    for (index in 0 until minOf(left.length, right.length)) {
        val (one, other) = left[index] to right[index]
        if (one == other) continue
        return if (one.isSurrogate() != other.isSurrogate()) if (one.isSurrogate()) 1 else -1 else one.compareTo(other)
    }
    return left.length.compareTo(right.length)
}
