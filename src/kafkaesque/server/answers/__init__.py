"""What several handlers share. Each module builds one part of answers, such as where brokers are or
who leads instead, or asks a coordinator. May import `requests`.
"""
