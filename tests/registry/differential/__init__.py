"""The registry's answers beside recorded ones of Apicurio's interface like Confluent's, case by case."""
