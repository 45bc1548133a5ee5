"""How complete an answer is, and how it is shown."""
