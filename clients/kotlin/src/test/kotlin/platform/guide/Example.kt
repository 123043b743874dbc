package platform.guide

import kotlinx.coroutines.flow.first
import kotlinx.serialization.Serializable
import platform.client.*

@Serializable
data class Film(val id: String, val title: String, val year: Int, val likes: Int = 0)

suspend fun main() {
    PlatformClient(URL).use { client ->
        client.auth.signUp("ann@example.com", "correct horse battery")
        val films = client.db("shared").table("films", Film.serializer())

        val heat = films.insert(mapOf("title" to "Heat", "year" to 1995))
        films.batch(inserts = listOf(mapOf("title" to "Airplane!", "year" to 1980), mapOf("title" to "Ronin", "year" to 1998)))
        films.update(heat.id, mapOf("likes" to increment()))

        films.where("year", ">", 1990).sort("year").records().collect { println("${it.title} ${it.likes}") }
        println(films.where(anyOf(condition("year", "<", 1990), condition("likes", ">", 0))).count())
        println(films.aggregate(listOf("count()", "max(year)")))

        try {
            films.insert(mapOf("year" to 2001))
        } catch (error: PlatformException) {
            println("${error.status} ${error.fields["title"]?.code}")
        }

        val best = films.sort("likes", Direction.DESC).limit(2).live()
        films.update(heat.id, mapOf("likes" to increment(10)))
        println(best.first().map { it.title })
    }
}
