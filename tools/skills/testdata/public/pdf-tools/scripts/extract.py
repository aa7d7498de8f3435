print("pages")
