from scrapy_plus import run

if __name__ == "__main__":
    run()
